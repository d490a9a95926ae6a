"""What a generated package carries to install itself: standard library only, cheap to import, without the engine.

`regen` writes these modules into the generated package, as `<package>._runtime`, where a manifest has `installs`.
"""

from afd_patchkit.runtime.binding import Target as Target
from afd_patchkit.runtime.gate import Gate as Gate
from afd_patchkit.runtime.installer import Installer as Installer
from afd_patchkit.runtime.proof import Pinned as Pinned
from afd_patchkit.runtime.report import InstallError as InstallError
from afd_patchkit.runtime.report import InstallState as InstallState
from afd_patchkit.runtime.report import TargetState as TargetState

"""A headless Chromium; tests say why they are skipped where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from afd_patchkit.reports.context import Context
from afd_patchkit.reports.upgrade.html import render_upgrade_html
from afd_patchkit.upgrade.result import UpgradeResult

# nothing of it may reach for the network, and nothing may depend on a user's profile
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--lang=en",
)  # fmt: skip


def _program(*names: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no {names[0]} here: on Debian, `apt-get install chromium chromium-driver`")
    return found


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = _program("chromium", "chromium-browser", "google-chrome")
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(_program("chromedriver")))
    driver.set_script_timeout(600)
    yield driver
    driver.quit()


class Page:
    """An upgrade's page, open in the browser."""

    def __init__(self, driver: Any, path: Path) -> None:
        self.driver, self.path = driver, path

    def open(self, fragment: str = "") -> None:
        """Load it anew."""
        self.driver.get("about:blank")
        self.driver.get(self.path.as_uri() + fragment)

    def js(self, script: str, *arguments: object) -> Any:
        """Run a function body in the page."""
        return self.driver.execute_script(script, *arguments)

    def press(self, *keys: str) -> None:
        """Press keys as a person does, where the focus is."""
        from selenium.webdriver import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def click(self, selector: str) -> None:
        """Click the first element."""
        self.driver.find_element("css selector", selector).click()

    def texts(self, selector: str) -> list[str]:
        """Text of all elements, hidden ones too."""
        return list(self.js("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector))

    def text(self, selector: str) -> str:
        """Text of the one element."""
        (found,) = self.texts(selector)
        return found

    def size(self, width: int, height: int = 900) -> None:
        """Give the window a size."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def prefers(self, scheme: str) -> None:
        """What the system asks for: `dark` or `light`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def complaints(self) -> list[dict[str, Any]]:
        """What the console says."""
        return list(self.driver.get_log("browser"))


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Render results, open the page; at the end nothing may stand on the console or have been fetched."""
    pages: list[Page] = []

    def call(results: Sequence[UpgradeResult], *, width: int = 1400, scheme: str = "light", **options: Any) -> Page:
        path = tmp_path / f"page{len(pages)}.html"
        path.write_text(
            render_upgrade_html(results, Context("upgrade"), **options), encoding="utf-8", errors="backslashreplace"
        )
        page = Page(browser, path)
        page.size(width)
        page.prefers(scheme)
        page.complaints()
        page.open()
        pages.append(page)
        return page

    yield call
    for page in pages[-1:]:
        assert page.complaints() == []
        assert page.js("return performance.getEntriesByType('resource').length") == 0
        page.js("localStorage.clear()")

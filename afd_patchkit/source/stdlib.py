"""Builtins and top-level modules of the standard library, Python 3.10 to 3.13 together.

The lists are written down, so that the output does not depend on the Python that runs or on what it has loaded.
"""

from __future__ import annotations

STDLIB = frozenset(
    """
    __future__ _thread abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb
    binascii binhex bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections
    colorsys compileall concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses
    dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler
    fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib
    grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json
    keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib
    msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev
    pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty
    pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter
    runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver
    spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau
    symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit
    tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata
    unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp
    zipfile zipimport zlib zoneinfo
    """.split()  # noqa: SIM905 - a list of strings would be eight times as long
)

BUILTINS = frozenset(
    """
    ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError BrokenPipeError
    BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError
    ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning EnvironmentError Exception
    ExceptionGroup False FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError
    ImportError ImportWarning IndentationError IndexError InterruptedError IsADirectoryError KeyError
    KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError None NotADirectoryError NotImplemented
    NotImplementedError OSError OverflowError PendingDeprecationWarning PermissionError ProcessLookupError
    PythonFinalizationError RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning
    StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError True
    TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError
    UnicodeWarning UserWarning ValueError Warning WindowsError ZeroDivisionError _IncompleteInputError
    __build_class__ __debug__ __import__ abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable
    chr classmethod compile complex copyright credits delattr dict dir divmod enumerate eval exec exit filter float
    format frozenset getattr globals hasattr hash help hex id input int isinstance issubclass iter len license list
    locals map max memoryview min next object oct open ord pow print property quit range repr reversed round set
    setattr slice sorted staticmethod str sum super tuple type vars zip
    """.split()  # noqa: SIM905 - a list of strings would be eight times as long
)

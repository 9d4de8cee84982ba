"""What a model's Python code can do, and what it can't, whatever it tries."""

import asyncio
import io
import json
import os
import threading
import time
from pathlib import Path

import pytest

from agents.catalog.attachments.code_files import check_image
from agents.engine import call_context
from agents.tools import sandbox
from agents.tools.python import ChatFile, RunPythonTool, files, tool
from agents.tools.sandbox import system_calls, worker

pytestmark = pytest.mark.skipif(
    not sandbox.confines_foreign_code(), reason="the kernel can't confine foreign code"
)


async def run(code, *, chat_files=(), seconds=20):
    async def load():
        return chat_files

    runner = RunPythonTool(check_image, load)
    runner.timeout = seconds
    return await runner.execute({"code": code})


async def refusal(code):
    """Return the last line of the traceback with which the code ended."""
    result = await run(code)
    assert result.is_error, result.output
    assert result.mendable
    return [line for line in result.error.splitlines() if not line.startswith("[")][-1]


def chat_file(name, data):
    return ChatFile(name=name, size=len(data), open=lambda: io.BytesIO(data))


# What it is for


async def test_what_is_printed_and_the_last_expression_are_the_result():
    result = await run("x = 6\nprint('first')\nx * 7")

    assert result.output == "first\n42"


async def test_numpy_is_there():
    assert (await run("import numpy as np\nint(np.arange(5).sum())")).output == "10"


async def test_each_call_starts_afresh():
    await run("x = 1\nopen('a.txt', 'w').write('a')")

    assert (await run("import os\n'x' in globals() or os.listdir()")).output == "[]"


async def test_the_chats_files_are_there_by_name_and_arent_results():
    orders = chat_file("orders.csv", b"price\n3\n4\n")
    code = "import csv\nsum(int(row['price']) for row in csv.DictReader(open('orders.csv')))"

    result = await run(code, chat_files=[orders])

    assert (result.output, result.attachments) == ("7", ())


async def test_files_with_the_same_name_and_folders_in_names_are_told_apart():
    chat_files = [chat_file(name, b"a") for name in ("a.csv", "a.csv", "../../b.csv", "..")]

    result = await run("import os\nsorted(os.listdir())", chat_files=chat_files)

    assert result.output == "['a (2).csv', 'a.csv', 'b.csv', 'file']"


async def test_files_that_the_code_writes_are_attachments():
    result = await run(
        "from PIL import Image\nImage.new('RGB', (40, 30)).save('chart.png')\n"
        "open('data.json', 'w').write('{}')\nopen('notes.txt', 'w').write('seen')\nNone"
    )

    types = {file.name: file.mime_type for file in result.attachments}
    assert types == {
        "chart.png": "image/png",
        "data.json": "application/json",
        "notes.txt": "text/plain",
    }


async def test_an_open_file_is_saved_when_the_code_ends():
    result = await run("file = open('a.txt', 'w')\nfile.write('text')\nNone")

    assert result.attachments[0].data == b"text"


async def test_an_error_is_a_traceback_of_the_code_without_the_servers_paths():
    result = await run("import json\ndef read():\n    return json.loads('{')\nread()")

    assert 'File "<code>", line 3, in read' in result.error
    assert "JSONDecodeError" in result.error
    assert "site-packages" not in result.error
    assert str(Path.cwd()) not in result.error
    assert "/lib/" not in result.error


async def test_a_path_in_a_message_is_left_out():
    assert os.sep + "lib" not in await refusal("from json import nothing")


async def test_what_was_printed_before_an_error_is_returned_with_it():
    assert "before" in (await run("print('before')\n1 / 0")).error


async def test_code_that_doesnt_end_is_stopped_in_words():
    result = await run("print('began', flush=True)\nwhile True: pass", seconds=2)

    assert "within 2 s" in result.error
    assert "began" in result.error


async def test_a_stopped_call_ends_its_process(monkeypatch):
    folders = []
    began = threading.Event()

    def check_size(folder):
        folders.append(folder.path)
        began.set()

    monkeypatch.setattr(files.CodeFolder, "check_size", check_size)
    call = asyncio.ensure_future(run("import time\ntime.sleep(20)"))
    await asyncio.to_thread(began.wait, 10)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    await asyncio.to_thread(wait_until_deleted, folders[0])  # after the process


def wait_until_deleted(folder):
    end = time.monotonic() + 5
    while folder.exists():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("code", ["", "  \n", "x" * 50_001])
async def test_no_code_and_too_much_code_are_refused(code):
    assert (await run(code)).mendable


async def test_where_code_cant_be_confined_it_isnt_run(monkeypatch):
    monkeypatch.setattr(sandbox, "confines_foreign_code", lambda: False)

    result = await run("print('it ran')")

    assert "can't be confined" in result.error
    assert not result.mendable


def test_a_child_with_foreign_code_isnt_started_unconfined(monkeypatch):
    monkeypatch.setattr(worker, "confines_foreign_code", lambda: False)

    with pytest.raises(RuntimeError):
        sandbox.command(tool.CODE_RUNNER, sandbox.Grant(seconds=5))


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64"])
def test_every_processor_has_its_own_numbers_without_doubles(machine):
    calls = [rule.call for rule in system_calls.refused_calls(machine)]

    assert len(calls) == len(set(calls))


async def test_a_user_has_one_slot_and_another_user_gets_the_next(monkeypatch):
    class Of(call_context.CallContext):
        def __init__(self, user_id):
            self.user_id = user_id

    monkeypatch.setattr(tool, "WAITING_SECONDS", 0.2)
    with tool.SLOTS.slot("Akiko", 1):
        with call_context.use_context(Of("Akiko")):
            assert "Try again" in (await run("1")).error
        with call_context.use_context(Of("Ben")):
            assert (await run("1")).output == "1"


# Attacks: processes and memory


async def test_a_fork_bomb_starts_no_process():
    assert "Permission denied" in await refusal("import os\nwhile True: os.fork()")


async def test_no_thread_is_started():
    assert "can't start new thread" in await refusal(
        "import threading, time\n"
        "while True: threading.Thread(target=time.sleep, args=[9]).start()"
    )


@pytest.mark.parametrize(
    "code",
    ["x = bytearray(10_000_000_000)", "import numpy\nnumpy.ones(10**10)", "'x' * 10**10"],
)
async def test_too_much_memory_is_refused_in_words(code):
    assert "needed more memory than the limit of 256 MB" in (await run(code)).error


async def test_memory_in_small_pieces_has_the_same_limit():
    result = await run("parts = []\nwhile True: parts.append(bytes(100_000))")

    assert "256 MB" in result.error


async def test_raised_limits_are_refused():
    assert "ValueError" in await refusal(
        "import resource as r\nr.setrlimit(r.RLIMIT_AS, (10**10, 10**10))"
    )


# Attacks: files


async def test_a_file_that_is_too_large_cannot_be_written():
    code = "with open('x', 'wb') as f:\n    while True: f.write(bytes(10**6))"

    assert "File too large" in await refusal(code)


async def test_many_files_that_fill_the_disk_end_the_code():
    result = await run(
        "import itertools\n"
        "for n in itertools.count(): open(f'{n}.txt', 'wb').write(bytes(4_000_000))"
    )

    assert "too many or too large files" in result.error


async def test_a_hundred_thousand_files_end_the_code_and_are_removed(monkeypatch, tmp_path):
    monkeypatch.setattr(tool.tempfile, "tempdir", str(tmp_path))

    result = await run("for n in range(100_000): open(f'{n}', 'w').close()\nwhile True: pass")

    assert "too many or too large files" in result.error
    assert list(tmp_path.iterdir()) == []


async def test_files_are_counted_after_the_output_was_closed():
    result = await run(
        "import os\nos.close(1); os.close(2)\n"
        "for n in range(9_999): open(f'{n}', 'w').close()\nwhile True: pass"
    )

    assert "too many or too large files" in result.error


async def test_a_link_out_of_the_folder_is_neither_read_nor_saved(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("hush")

    result = await run(f"import os\nos.symlink({str(secret)!r}, 'a.txt')")
    assert result.attachments == ()
    assert "a.txt: not saved" in result.output
    assert "Permission denied" in await refusal(
        f"import os\nos.symlink({str(secret)!r}, 'a.txt')\nopen('a.txt').read()"
    )
    assert await refusal(f"import os\nos.link({str(secret)!r}, 'a.txt')")


async def test_an_attachment_cannot_replace_a_module():
    result = await run("import json\njson.dumps(1)", chat_files=[chat_file("json.py", b"1/0")])

    assert result.output == "'1'"


# Attacks: everything that is refused with an error, tried in one process

REFUSED = {
    "programs": [
        "subprocess.run(['/bin/true'])",
        "os.execv('/bin/true', ['true'])",
        "os.posix_spawn('/bin/true', ['true'], {{}})",
        "multiprocessing.get_context('fork').Process(target=print).start()",
        "os.fork()",
        "os.forkpty()",
    ],
    "memory that outlives it": [
        "os.memfd_create('x')",
        "libc('shmget', 0, 1 << 30, 0o1666)",
        "libc('msgget', 0, 0o1666)",
        "libc('semget', 0, 9, 0o1666)",
        "shared_memory.SharedMemory(create=True, size=9)",
    ],
    "folders and pipes": ["os.mkdir('a')", "os.makedirs('a/b')", "os.mkfifo('a')"],
    "files of the server": [
        "open({path!r}).read()",
        "open({path!r}, 'w')",
        "open({path!r}, 'a')",
        "os.truncate({path!r}, 0)",
        "os.remove({path!r})",
        "os.rename({path!r}, 'a')",
        "os.link({path!r}, 'a')",
        "os.symlink({path!r}, 'link') or open('link').read()",
        "os.listdir(os.path.dirname({path!r}))",
        "os.chmod({path!r}, 0o777)",
        "os.chown({path!r}, 1, 1)",
        "os.utime({path!r})",
        "os.setxattr({path!r}, 'user.a', b'1')",
        "fcntl.ioctl(os.open(os.__file__, 0), 0x40086602, bytearray(8))",  # its flags
        "sqlite3.connect({path!r}).execute('SELECT 1')",
    ],
    "files of the machine": [
        "open('/etc/passwd').read()",
        "open('/etc/hostname').read()",
        "open('/proc/meminfo').read()",
        "os.listdir('/sys')",
        "os.listdir('/proc')",
        "os.listdir('/tmp')",
        "os.listdir('/')",
        "os.remove(os.__file__)",
        "os.chmod(os.__file__, 0)",
        "open(os.__file__, 'r+')",
        "os.remove(os.path.realpath(sys.executable))",
    ],
    "other processes": [
        *(
            f"open('/proc/{owner}/{name}').read(1)"
            for name in ("environ", "mem", "maps", "cmdline", "status")
            for owner in ("self", "{parent}", "1")
        ),
        "os.listdir('/proc/{parent}/fd')",
        "os.readlink('/proc/{parent}/exe')",
        "os.readlink('/proc/{parent}/fd/0')",
        "os.kill({parent}, 0)",
        "os.kill({parent}, signal.SIGTERM)",
        "os.kill(-1, signal.SIGTERM)",
        "os.pidfd_open({parent})",
        "resource.prlimit({parent}, resource.RLIMIT_CPU, (1, 1))",
        "resource.prlimit({parent}, resource.RLIMIT_NOFILE)",
        "os.setpriority(os.PRIO_PROCESS, {parent}, 19)",
        "os.sched_setaffinity({parent}, [0])",
        "fcntl.fcntl(0, fcntl.F_SETOWN, {parent})",
        "fcntl.fcntl(0, 10, signal.SIGKILL)",
        "libc('ptrace', 16, {parent}, 0, 0)",
        "libc('process_vm_readv', {parent}, None, 0, None, 0, 0)",
    ],
    "life after the server": ["libc('prctl', 1, 0, 0, 0, 0)"],
    "more of the disk": ["libc('fallocate', os.open('a', 66), 1, ctypes.c_long(0), 1 << 24)"],
    "the kernel": [
        "libc('unshare', 0x10000000)",
        "libc('mount', b'none', b'/', b'tmpfs', 0, None)",
        "libc('chroot', b'.')",
        "libc('inotify_init1', 0)",
        "libc('klogctl', 3, None, 0)",
        "libc('syscall', 425, 1, None)",
        "libc('syscall', 0x40000000 | 41, 1, 1, 0)",
    ],
    "sockets": [
        *(
            f"socket.socket(socket.{family}, socket.SOCK_DGRAM)"
            for family in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET")
        ),
        "socket.socketpair()",
        "socket.gethostbyname('example.com')",
    ],
}
ATTEMPTS = [attempt for attempts in REFUSED.values() for attempt in attempts]
TRY_ALL = """
import ctypes, fcntl, json, multiprocessing, os, resource, signal, socket, sqlite3
import subprocess, sys
from multiprocessing import shared_memory
def libc(name, *arguments):
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
answers = []
for attempt in ATTEMPTS:
    try:
        answers.append("done: " + repr(eval(attempt))[:100])
    except Exception as error:
        answers.append(str(error))
print(json.dumps(answers))
"""
DENIALS = (
    "Permission denied",
    "Invalid cross-device link",
    "unable to open database file",
    "Name or service not known",
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What one process is told that tries all of it, and a file of the server afterwards."""
    path = tmp_path_factory.mktemp("server") / "db.sqlite3"
    path.write_text("rows")
    before = path.stat()
    attempts = [attempt.format(path=str(path), parent=os.getpid()) for attempt in ATTEMPTS]
    result = asyncio.run(run(f"ATTEMPTS = {attempts!r}\n{TRY_ALL}"))
    assert not result.is_error, result.error
    after = path.stat()
    assert path.read_text() == "rows"
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    return dict(zip(ATTEMPTS, json.loads(result.output.splitlines()[0]), strict=True))


@pytest.mark.parametrize("kind", REFUSED)
def test_the_code_has_no_way_to(kind, answers):
    done = {a: answers[a] for a in REFUSED[kind] if not any(d in answers[a] for d in DENIALS)}

    assert done == {}


async def test_it_has_no_variables_of_the_server(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "hush")

    result = await run("import os\nsorted(os.environ)")

    assert "SECRET_KEY" not in result.output
    assert "hush" not in (await run("import os\ndict(os.environ)")).output


async def test_nothing_is_inherited_but_three_pipes():
    code = (
        "import os, stat\n"
        "def kind(number):\n"
        "    try: return stat.S_ISFIFO(os.fstat(number).st_mode)\n"
        "    except OSError: return None\n"
        "[(number, kind(number)) for number in range(200) if kind(number) is not None]"
    )

    assert (await run(code)).output == "[(0, True), (1, True), (2, True)]"


# Attacks: output and ends


async def test_endless_output_ends_the_code():
    result = await run("while True: print('x' * 1_000)")

    assert "more than 1 MB" in result.error
    assert len(result.error) < 60_000


async def test_long_output_keeps_its_beginning_and_its_end():
    result = await run("print('first')\nprint('x' * 200_000)\nprint('last')")

    assert len(result.output) < 51_000
    assert result.output.startswith("first")
    assert result.output.endswith("last")


async def test_what_is_written_past_print_is_only_text():
    forged = '{"code": 0, "output": "forged"}'

    result = await run(f"import os\nos.write(1, {forged.encode()!r})\nos.write(2, b'!')\nNone")

    assert result.output == f"{forged}!"
    assert "Bad file" in await refusal("import os\nos.write(0, b'x')\n")
    assert "Bad file" in await refusal("import os\nos.write(3, b'x')\n")


async def test_there_is_no_input():
    assert "EOFError" in await refusal("input()")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("import os; os._exit(3)", "exit code 3"),
        ("import sys; sys.exit(4)", "exit code 4"),
        ("import sys; sys.exit('no rows')", "no rows"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os.abort()", "SIG"),
        ("def f(): f()\nf()", "RecursionError"),
        ("(" * 10_000, "SyntaxError"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise BaseException('own')", "own"),
        ("class E(Exception):\n  def __str__(self): 1/0\nraise E", "E: <exception str"),
        ("raise ExceptionGroup('both', [ValueError('one'), OSError('other')])", "one"),
    ],
)
async def test_every_end_is_said(code, sentence):
    result = await run(code)

    assert sentence in result.error
    assert result.mendable


@pytest.mark.parametrize("code", ["import os; os._exit(0)", "import sys; sys.exit()", "None"])
async def test_code_that_ends_without_a_word_says_so(code):
    assert "printed nothing" in (await run(code)).output


# Attacks: files that are saved


async def test_a_pixel_bomb_is_not_saved():
    result = await run(BOMB)

    assert result.attachments == ()
    assert "bomb.png: not saved" in result.output


BOMB = """
import struct, zlib
def chunk(kind, data):
    checked = kind + data
    return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))
header = struct.pack(">IIBBBBB", 30_000, 30_000, 1, 0, 0, 0, 0)
rows = zlib.compressobj()
data = b"".join(rows.compress(bytes(3_751)) for _ in range(30_000)) + rows.flush()
parts = chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
open("bomb.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + parts)
"""


async def test_a_picture_that_isnt_one_is_not_saved():
    result = await run("open('a.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 99)")

    assert "a.png: not saved" in result.output


@pytest.mark.parametrize(
    "content",
    [
        "<script>alert(1)</script>",
        "<a href='javascript:alert(1)'/>",
        "<image href='https://example.com/pixel'/>",
        "<g onload='alert(1)'/>",
        "<foreignObject/>",
    ],
)
async def test_an_svg_that_does_something_is_not_saved(content):
    svg = f"<svg xmlns='http://www.w3.org/2000/svg'>{content}</svg>"

    result = await run(f"open('a.svg', 'w').write({svg!r})")

    assert result.attachments == ()
    assert "a.svg: not saved" in result.output


async def test_an_svg_that_is_a_picture_is_saved():
    svg = "<svg xmlns='http://www.w3.org/2000/svg'><rect width='9' height='9'/></svg>"

    result = await run(f"open('a.svg', 'w').write({svg!r})")

    assert result.attachments[0].mime_type == "image/svg+xml"
    assert result.attachments[0].kind == "file"


async def test_a_table_runs_no_formula_and_its_numbers_stay():
    table = "name,change\n=HYPERLINK(1),-5\n+1-800,-1.5e3\n＝1,+2%\n"

    result = await run(f"open('a.csv', 'w').write({table!r})")

    saved = result.attachments[0].data.decode()
    assert saved == "name,change\n'=HYPERLINK(1),-5\n'+1-800,-1.5e3\n'＝1,+2%\n"


@pytest.mark.parametrize(
    "content", [b"\x7fELF" + bytes(99), b"PK\x03\x04" + bytes(99), bytes(99)]
)
async def test_other_files_are_not_saved(content):
    result = await run(f"open('a.txt', 'wb').write({content!r})")

    assert result.attachments == ()
    assert "a.txt: not saved" in result.output


async def test_ten_files_are_saved_and_the_others_named():
    result = await run("for n in range(12): open(f'{n:02}.txt', 'w').write(str(n))")

    assert len(result.attachments) == files.MAX_FILES
    assert "11.txt: not saved" in result.output


async def test_only_some_files_are_checked(monkeypatch):
    checked = []

    def check(name, data, mime_type):
        checked.append(name)
        raise files.FileRejected("damaged")

    runner = RunPythonTool(check)
    code = "for n in range(60): open(f'{n:02}.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n')"
    result = await runner.execute({"code": code})

    assert len(checked) == files.MAX_CHECKED_FILES
    assert "59.png: not saved" in result.output


async def test_links_to_a_large_file_of_the_chat_are_not_read_whole(monkeypatch):
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 1_000)
    sizes = []
    read = files._read

    def read_and_note(*arguments):
        data = read(*arguments)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(files, "_read", read_and_note)
    chat_files = [chat_file("large.txt", b"a" * 50_000)]
    result = await run("import os\nos.link('large.txt', 'b.txt')", chat_files=chat_files)

    assert "b.txt: not saved: too large" in result.output
    assert sorted(sizes) == [1_001, 50_000]


async def test_a_long_name_of_three_bytes_per_letter_is_cut():
    name = "売" * 200 + ".csv"
    result = await run("import os\nos.listdir()", chat_files=[chat_file(name, b"a")] * 2)

    assert len(eval(result.output)) == 2
    assert ".csv" in result.output


@pytest.mark.parametrize("cell", ["-" + "1" * 100_000 + "x", "-1" + " " * 100_000 + "x"])
def test_a_long_cell_that_is_nearly_a_number_takes_no_time(cell):
    started = time.process_time()

    assert files.without_formulas(cell.encode(), ",") == f"'{cell}\n".encode()
    assert time.process_time() - started < 1


async def test_a_name_with_invisible_characters_is_cleaned():
    result = await run("open('a\\u202etxt.exe\\n.txt', 'w').write('a')")

    assert result.attachments[0].name.isprintable()

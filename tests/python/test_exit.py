"""The end of the interpreter, in every order: it is silent and keeps the exit status."""

import subprocess
import sys

import graphs
import pytest

PRELUDE = f"""
import atexit, gc, os, sys, threading, time, weakref
import numpy as np
import tenon

MODEL = {graphs.product_chain(64, 4)!r}
X = np.full((64, 64), 1 / 64, np.float32)


def open_session(threads=2):
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    return tenon.InferenceSession(MODEL, options)


def run(session):
    return session.run(None, {{"x": X}})[0]


def run_for_ever(session):
    while True:
        run(session)
"""

ORDERS = {
    "sessions in globals": """
session = open_session()
result = run(session)
""",
    "a session in a cycle": """
class Holder:
    pass
holder = Holder()
holder.self, holder.session = holder, open_session()
run(holder.session)
del holder
""",
    "a session in a module that goes late": """
sys.tenon_session = open_session()
import builtins
builtins.kept = (sys.tenon_session, run(sys.tenon_session))
""",
    "values and bindings that outlive their session": """
session = open_session()
binding = session.io_binding()
binding.bind_cpu_input("x", X)
binding.bind_output("y")
session.run_with_iobinding(binding)
value = binding.get_outputs()[0]
array = value.numpy()
view = np.from_dlpack(value)
del session
""",
    "a thread that has run": """
session = open_session()
thread = threading.Thread(target=run, args=(session,))
thread.start()
""",
    "a daemon thread that runs": """
session = open_session()
threading.Thread(target=run_for_ever, args=(session,), daemon=True).start()
time.sleep(0.1)
""",
    "daemon threads that run, each with a session": """
for _ in range(3):
    threading.Thread(target=lambda: run_for_ever(open_session()), daemon=True).start()
time.sleep(0.2)
""",
    "runs at exit": """
session = open_session()
atexit.register(lambda: run(session))
""",
    "a session made at exit": """
atexit.register(lambda: run(open_session()))
""",
    "a session made and kept at exit": """
@atexit.register
def make():
    global late
    late = open_session()
    run(late)
""",
    "a finalizer that runs": """
class Runner:
    def __init__(self):
        self.session = open_session()
    def __del__(self):
        try:
            run(self.session)
        except ImportError:
            pass  # modules may have gone before
runner = Runner()
""",
    "an asynchronous run without a wait": """
session = open_session()
session.run_async(None, {"x": X}, lambda outputs, data, error: None, None)
""",
    "asynchronous runs whose callbacks hold the session": """
session = open_session()
def again(outputs, left, error):
    if left > 0:
        session.run_async(None, {"x": X}, again, left - 1)
again(None, 100, "")
""",
    "an asynchronous run in a loop that is closed": """
import asyncio
session = open_session()
async def leave():
    asyncio.ensure_future(session.run_async(None, {"x": X}))
    await asyncio.sleep(0)
asyncio.run(leave())
""",
    "sys.exit in a worker thread": """
session = open_session()
def leave():
    run(session)
    sys.exit(3)
thread = threading.Thread(target=leave)
thread.start()
thread.join()
""",
    "os._exit in a worker thread": """
session = open_session()
def leave():
    run(session)
    os._exit(0)
threading.Thread(target=leave).start()
time.sleep(30)
""",
    "a child that ends by itself": """
session = open_session()
run(session)
child = os.fork()
if child == 0:
    run(session)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
    "a child of a process whose threads run": """
session = open_session()
threading.Thread(target=run_for_ever, args=(session,), daemon=True).start()
time.sleep(0.05)
child = os.fork()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
    "memory that would be given back": """
options = tenon.SessionOptions()
options.add_session_config_entry("tenon.idle_trim_us", "1000")
session = tenon.InferenceSession(MODEL, options)
for _ in range(50):
    run(session)
""",
    "an exception": """
session = open_session()
run(session)
raise SystemExit(0)
""",
}


# Since 3.12 Python warns of every fork of a process that has threads.
QUIET = ["-W", "ignore:This process:DeprecationWarning"]


@pytest.mark.parametrize("order", ORDERS)
def test_the_interpreter_ends_quietly(order: str) -> None:
    done = subprocess.run(
        [sys.executable, *QUIET, "-c", PRELUDE + ORDERS[order]],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")

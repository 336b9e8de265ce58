import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "conformance"))
sys.path.insert(0, str(ROOT / "tests" / "python"))

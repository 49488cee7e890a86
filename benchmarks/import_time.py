"""How long `import antiphon` takes beside `import asyncio, json, msgspec`: interleaved medians, warm bytecode.

    python benchmarks/import_time.py [repeats]

Each import is a fresh interpreter; the aim is a ratio of at most 2.5.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

OURS = "import antiphon"
FLOOR = "import asyncio, json, msgspec"
AIM = 2.5


def timed(code: str, environ: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environ)
    return time.perf_counter() - began


def main(repeats: int) -> None:
    with tempfile.TemporaryDirectory() as bytecode:
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environ["PYTHONPYCACHEPREFIX"] = bytecode
        for code in (OURS, FLOOR):
            timed(code, environ)  # writes the bytecode
        taken: dict[str, list[float]] = {OURS: [], FLOOR: []}
        for _ in range(repeats):
            for code, times in taken.items():
                times.append(timed(code, environ))
    medians = {code: statistics.median(times) for code, times in taken.items()}
    for code, median in medians.items():
        print(f"{median * 1000:7.1f} ms  {code}")
    print(f"{medians[OURS] / medians[FLOOR]:7.2f} times, of at most {AIM}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)

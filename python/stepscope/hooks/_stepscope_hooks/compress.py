"""python compress.py TARGET.gz LOG < text: a program of its own, started by spool.py in a session of its own.

Writes TARGET.gz.part and renames it when it is whole. What could be written before the disk was full keeps its bytes
under the final name: stepscope opens a cut file as far as it goes. Lowest priority: the job comes first.
"""

import os
import sys
import time
import zlib


def main(target: str, log: str) -> int:
    try:
        os.nice(19)
    except OSError:
        pass
    failure = None
    try:
        with open(target + ".part", "wb") as out:
            packer = zlib.compressobj(3, zlib.DEFLATED, 31)  # 31: the header and sum of gzip
            tail = b""
            while True:
                block = os.read(0, 1 << 20)
                if not block:
                    break
                tail = (tail + block)[-64:]
                out.write(packer.compress(block))
            out.write(packer.flush())
        if not tail.rstrip().endswith(b"}"):
            failure = "the trace was cut: torch could not write it to its end"
    except OSError as error:
        failure = f"the trace was cut: {error}"
    try:
        if os.path.getsize(target + ".part") > 0:
            os.rename(target + ".part", target)
        else:
            os.unlink(target + ".part")
    except OSError as error:
        failure = failure or f"the trace was lost: {error}"
    if failure:
        try:
            with open(log, "a") as lines:
                name = os.path.basename(target)
                lines.write(f"{time.strftime('%H:%M:%S')} {name}: {failure}\n")
        except OSError:
            pass
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))

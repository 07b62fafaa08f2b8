"""python -m stepscope: the command line."""

import sys

from stepscope._command import main

sys.exit(main())

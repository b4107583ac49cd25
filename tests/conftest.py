"""What every test shares: a disk cache of its own, so that runs never meet the user's."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

# Before anything imports fusec: settings are read once, and child processes inherit them.
os.environ["FUSEC_CACHE_DIR"] = tempfile.mkdtemp(prefix="fusec-test-cache-")
atexit.register(shutil.rmtree, os.environ["FUSEC_CACHE_DIR"], ignore_errors=True)

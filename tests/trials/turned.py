"""Run by the fork server: turns knobs in this process as the import of torch does in a trial, then runs a program.

turned.py KNOBS_AS_JSON PROGRAM [ARGUMENT…]
"""

import gc
import os
import runpy
import sys

from _trainsleuth_inside import knobs
from _trainsleuth_inside.watch import Watch

os.environ["TRAINSLEUTH_KNOBS"], program = sys.argv[1:3]
watch = next(thing for thing in gc.get_objects() if type(thing) is Watch)
knobs.set_at_the_start(watch.facts)
knobs.set_from_environment(watch)
sys.argv[:] = [program, *sys.argv[3:]]
sys.path.insert(0, os.path.dirname(program))
runpy.run_path(program, run_name="__main__")

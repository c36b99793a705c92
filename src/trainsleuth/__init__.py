"""TrainSleuth: why is this training run sick, and what cures it?"""

__version__ = "0.1.0"

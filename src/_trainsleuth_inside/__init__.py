"""What TrainSleuth puts inside the training process: probes that record facts, and knobs for trials.

Standard library only, and nothing of the `trainsleuth` package: it runs on the program's own Python.
"""

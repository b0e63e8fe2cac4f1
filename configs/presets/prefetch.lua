-- A preset (docs/presets.md): threads load batches ahead of the steps that need them.
data.workers = 2               -- of each rank
data.prefetch = 4              -- batches of each thread

-- Trains three learning rates from the same checkpoint, and goes on with the best one.
--
--   footplate run kjv --script scripts/jobs/lr_sweep.lua

run.wait{ step = 100 }
print(branches{ steps = 60, keep = "best",
  { sched = { base_lr = 3e-4 } }, { sched = { base_lr = 1e-3 } }, { sched = { base_lr = 3e-3 } } })

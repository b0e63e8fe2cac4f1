-- A task without a model: each step takes model.step_ms. For trying the console, and for tests.
run.task = "synthetic"
model.step_ms = 10
model.elements = 1000
train.steps = 1000
train.batch_size = 8
sched.kind = "constant"
sched.warmup_steps = 0
sched.base_lr = 1e-2
eval.every = 0
eval.at_end = false
ckpt.every = 0
log.every = 100
guard.check_every = 50

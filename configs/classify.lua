-- A classifier of three labelled data sets at once (docs/classify.md): half a minute on two cores.
run.task = "classify"
data.share.set{ fashion = 16, digits = 3, cancer = 1 }

train.steps = 2400
train.batch_size = 160         -- global: 128 of Fashion-MNIST, 24 digits, 8 of cancer
sched.kind = "cosine"
sched.base_lr = 3e-3
sched.min_lr = 3e-5
sched.warmup_steps = 100
optim.weight_decay = 0.2
task.smoothing = 0.02

log.every = 20
eval.every = 600
eval.batches = 10              -- the last evaluation, at the end, takes everything that is held out
eval.batch_size = 200
ckpt.every = 800

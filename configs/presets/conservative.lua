-- A preset (docs/presets.md): the smallest use of everything, for a machine where others fail.
data.workers = 0               -- no threads that load
data.pin_memory = false
data.cache = "none"

train.micro_batch = 4          -- sequences of a rank at once; the batch stays what it is
eval.batch_size = 4
eval.async = false

comm.overlap = "off"           -- no reduction beside the backward pass
nccl.max_ctas = 1              -- one channel
nccl.p2p = "off"
nccl.nvls = "off"
nccl.collnet = "off"
nccl.ib = "off"                -- between hosts: sockets

log.every = 100
log.datasets = false
log.detail_every = 0

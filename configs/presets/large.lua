-- A preset (docs/presets.md): a long run of a large model logs, evaluates and saves seldom.
log.every = 100
eval.every = 1000
ckpt.every = 2000

-- A preset (docs/presets.md): each batch is loaded when its step begins, and nothing runs beside the steps.
data.workers = 0
data.cache = "none"
eval.async = false
comm.overlap = "off"

-- A preset (docs/presets.md): the data stay on the device, once they were loaded.
data.cache = "device"

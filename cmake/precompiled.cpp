// Carries what Precompiled.cmake compiles once.

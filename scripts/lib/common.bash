# Sourced by the scripts: where things are, and how they speak. Expects `set -euo pipefail`.
# shellcheck shell=bash disable=SC2034  # the variables are for those who source this

unset CDPATH # with it cd may go elsewhere, and prints where
ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)

# Some CI systems start jobs without HOME; mpirun and ccache both want one.
if [[ -z ${HOME:-} ]]; then
  HOME=$(getent passwd "$(id -u)" | cut -d: -f6) || true # a uid that has no name: containers
  export HOME=${HOME:-/tmp}
fi

CACHE=${FOOTPLATE_CACHE:-$HOME/.cache/footplate}
# Debian's Python, which the wheels are pinned for: another one may come first on PATH.
PYTHON=/usr/bin/python3

# ccache keeps what it compiled between checkouts: paths below the checkout are made relative, the compiler is known
# by its content. The sloppiness is what precompiled headers need.
export CCACHE_DIR=${CCACHE_DIR:-$CACHE/ccache} CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1 CCACHE_COMPILERCHECK=content
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-4G}

say() { printf '%s\n' "$*" >&2; }
die() {
  say "${0##*/}: $*"
  exit 1
}

# A container may have another one than the first.
has_device() { compgen -G '/dev/nvidia[0-9]*' >/dev/null; }

# The environment that programs are built against: cpu, or cuda where there is a device.
environment_name() { if [[ ${FOOTPLATE_CUDA:-} == 1 ]] || has_device; then echo cuda; else echo cpu; fi; }
environment() { echo "$CACHE/env-$(environment_name)"; }

# configure PRESET: runs CMake where the preset was never configured, or against another environment. Ninja itself sees to
# changed CMake files.
configure() {
  local folder=$ROOT/build/$1 wanted of
  wanted=$(environment)
  # A checkout that was moved or copied: what CMake has written names files of the old place.
  of=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$folder/CMakeCache.txt" 2>/dev/null || true)
  if [[ -n $of && ! $of -ef $ROOT ]]; then rm -rf "$folder"/{CMakeCache.txt,CMakeFiles,build.ninja,environment}; fi
  if [[ -f $folder/build.ninja && -f $folder/environment && $(<"$folder/environment") == "$wanted" ]]; then return; fi
  mkdir -p "$folder"
  if ! (cd "$ROOT" && cmake --preset "$1" "-DFOOTPLATE_ENV=$wanted" -UFOOTPLATE_TORCH -UFOOTPLATE_MPI) \
    >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    return 1
  fi
  echo "$wanted" >"$folder/environment"
}

# build PRESET [TARGET…]: one at a time in a folder; says nothing where there is nothing to do.
build() {
  local preset=$1 folder=$ROOT/build/$1
  shift
  mkdir -p "$folder"
  (
    flock 9 && configure "$preset" &&
      ninja -C "$folder" --quiet "$@" 2>&1 | sed '/^ninja: no work to do/d' >&2
  ) 9>"$folder/lock"
}

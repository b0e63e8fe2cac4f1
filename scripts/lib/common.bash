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
# by its content, and the language of messages counts for nothing. The other sloppiness is what precompiled headers need.
export CCACHE_DIR=${CCACHE_DIR:-$CACHE/ccache} CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1 CCACHE_COMPILERCHECK=content
export CCACHE_SLOPPINESS=locale,pch_defines,time_macros,include_file_mtime,include_file_ctime
export CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-4G}

say() { printf '%s\n' "$*" >&2; }
die() {
  say "${0##*/}: $*"
  exit 1
}

# A container may have another one than the first.
has_device() { compgen -G '/dev/nvidia[0-9]*' >/dev/null; }

# The environment that programs are built against: cpu, or cuda where there is a device.
# FOOTPLATE_CUDA=1 and 0 decide; scripts/deps --cuda leaves a mark for the builds that follow on a machine without a device.
environment_name() {
  case ${FOOTPLATE_CUDA:-} in
    0) echo cpu ;;
    1) echo cuda ;;
    *) if has_device || [[ -e $CACHE/with-cuda ]]; then echo cuda; else echo cpu; fi ;;
  esac
}

requirements() { if [[ $1 == cpu ]]; then echo "$ROOT/requirements.txt"; else echo "$ROOT/requirements-$1.txt"; fi; }

# The pinned lines of a requirements file and of those it includes. Of them, and of what makes the stubs, an environment's stamp
# is the hash.
pins() {
  local line
  while IFS= read -r line; do
    case $line in
      '#'*) ;;
      '-r '*) pins "$ROOT/${line#-r }" ;;
      *) printf '%s\n' "$line" ;;
    esac
  done <"$1"
}
has_torch() { [[ $1 == cpu || $1 == cuda ]]; }
pins_hash() { { pins "$(requirements "$1")" && { ! has_torch "$1" || cat "$ROOT/scripts/lib/cuda_stubs.py"; }; } | sha256sum | cut -d' ' -f1; }

# environment_of NAME: its folder. Checkouts with other pins have others, so that an upgrade takes nothing from a run that goes on.
environment_of() {
  local hash
  hash=$(pins_hash "$1")
  echo "$CACHE/env-$1-${hash:0:8}"
}
environment() { environment_of "$(environment_name)"; }

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

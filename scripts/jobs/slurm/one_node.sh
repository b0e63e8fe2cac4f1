#!/bin/bash
# A run on one node. Submit it in the project's folder:
#
#   sbatch scripts/jobs/slurm/one_node.sh kjv --name mine
#
# What follows the file is of `footplate run`. The job is put back into the queue before its time is over, and goes on from there.
# SLURM_SUBMIT_DIR has to be on a disk that every node sees.

#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=16
#SBATCH --time=24:00:00
#SBATCH --requeue --open-mode=append
##SBATCH --gpus-per-node=8

export PATH=$SLURM_SUBMIT_DIR/build/release/bin:$PATH
export FOOTPLATE_RUNS=${FOOTPLATE_RUNS:-$SLURM_SUBMIT_DIR/runs}
exec footplate run --resume auto --requeue --batch "$@"

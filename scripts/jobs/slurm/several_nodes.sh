#!/bin/bash
# A run on several nodes, with a rank for each task or device of a node. Submit it in the project's folder:
#
#   sbatch scripts/jobs/slurm/several_nodes.sh kjv --name mine
#
# What follows the file is of `footplate run`; --spare 1 keeps one of the nodes for a lost one. The job is put back into the queue
# before its time is over, and goes on from there. SLURM_SUBMIT_DIR has to be on a disk that every node sees.

#SBATCH --nodes=4 --ntasks-per-node=1 --cpus-per-task=16
#SBATCH --time=24:00:00
#SBATCH --requeue --open-mode=append
# With it a lost node costs its ranks, and not the job; but where the first one is lost, the job stands until its time is over.
##SBATCH --no-kill
##SBATCH --gpus-per-node=8

export PATH=$SLURM_SUBMIT_DIR/build/release/bin:$PATH
export FOOTPLATE_RUNS=${FOOTPLATE_RUNS:-$SLURM_SUBMIT_DIR/runs}
exec footplate run --resume auto --requeue --batch "$@"

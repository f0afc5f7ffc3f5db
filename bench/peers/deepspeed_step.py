"""DeepSpeed on one CPU rank: ZeRO 1, its own vectorised Adam, the model of torch_step.  deepspeed_step.py WORKLOAD THREADS"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))
import deepspeed_rank
from workloads import WORKLOADS

if __name__ == "__main__":
    deepspeed_rank.serve(WORKLOADS[sys.argv[1]], int(sys.argv[2]), {"stage": 1, "offload_optimizer": {"device": "cpu"}})

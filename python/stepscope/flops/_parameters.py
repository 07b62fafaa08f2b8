"""How many parameters a module has: each once, whoever shares it, and whole, however it is cut over the ranks.

Those of a mixture of experts that are spread over ranks say so in their `group_name` (DeepSpeed: "ep_size_4").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_EXPERT = "ep_size_"


@dataclass
class Parameters:
    common: int = 0
    expert: int = 0  # on this rank
    expert_of_model: int = 0  # on all ranks

    @property
    def here(self) -> int:
        return self.common + self.expert


def parameters_of(module: Any) -> Parameters:
    found = Parameters()
    for parameter in module.parameters():
        number = int(getattr(parameter, "ds_numel", None) or parameter.numel())  # ZeRO 3 leaves an empty one here
        ranks = _expert_ranks(parameter)
        if ranks == 0:
            found.common += number
        else:
            found.expert += number
            found.expert_of_model += number * ranks
    return found


def _expert_ranks(parameter: Any) -> int:
    """Over how many ranks the experts are spread that it belongs to; 0: no expert's."""
    group = str(getattr(parameter, "group_name", ""))
    size = group[len(_EXPERT) :] if group.startswith(_EXPERT) else ""
    return int(size) if size.isdigit() else 0

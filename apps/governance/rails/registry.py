"""Every rail by its code. A new rail is one file here, one line below, its code in ``config``."""

from apps.governance.rails.base import Rail
from apps.governance.rails.dlex_out import DataLeakExit
from apps.governance.rails.input_size import InputSize
from apps.governance.rails.msk import MaskPersonalData
from apps.governance.rails.pinj import PromptInjection
from apps.governance.rails.revprec import PrematureAction
from apps.governance.rails.vloop import VerbalLoop

RAILS: dict[str, Rail] = {
    rail.code: rail
    for rail in (
        InputSize(),
        MaskPersonalData(),
        PromptInjection(),
        VerbalLoop(),
        DataLeakExit(),
        PrematureAction(),
    )
}

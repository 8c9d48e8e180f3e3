"""The paper's table and figure, made again: ``fenchel reproduce table1 | figure1``."""

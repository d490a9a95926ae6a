"""An invented library that carries parcels."""

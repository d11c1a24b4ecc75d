"""The methods that we recommend: `pairs`, `moments`, and `dre` beside public images."""

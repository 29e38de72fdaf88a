"""Research question 3: what does each part of SPC contribute?"""

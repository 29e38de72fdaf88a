"""Research question 1: do errors converge on the answer that the prior favours?"""

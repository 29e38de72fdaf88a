"""Research question 5: where does correction by the prior end?"""

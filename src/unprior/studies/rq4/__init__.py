"""Research question 4: does SPC generalise?"""

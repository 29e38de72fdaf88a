"""Research question 2: how much does SPC repair, and what does it retain, beside other methods?"""

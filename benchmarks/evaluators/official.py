"""Runs the official evaluation.py in the folder of the first argument with the other arguments.

NLTK's sentence model is a download of its own. Where it is missing a query is taken for one sentence,
which makes no difference to SQL.
"""

import os
import runpy
import sys

import nltk

try:
    nltk.word_tokenize("a. b")
except LookupError:
    nltk.word_tokenize = nltk.tokenize.NLTKWordTokenizer().tokenize

folder = sys.argv[1]
sys.argv = ["evaluation.py"] + sys.argv[2:]
sys.path.insert(0, folder)
runpy.run_path(os.path.join(folder, "evaluation.py"), run_name="__main__")

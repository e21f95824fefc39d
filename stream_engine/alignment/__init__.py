"""Features of objects (of a network, of pixels, of a questionnaire) as predictors of people's answers.

`feature_files` reads a set of features, `feature_sets` joins sets with the objects of a snapshot by name, `transforms`
learns weights, a linear map and a combination of sets, `answers` says what is tested and how far it can be trusted,
and `evaluation` puts them together: which set predicts the answers, as it is and after learning, for responses and for
objects that the learning did not have.
"""

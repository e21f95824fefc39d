"""Classes of objects from comparisons: TripletBoost (Perrot & von Luxburg 2019), and nearest neighbours and support
vector machines on similarities. All on arrays: the refits `triplet_boost` and `classify` read snapshots."""

"""What to do now: (Situation, now) becomes a Plan. Pure; carrying the plan out is `kube.apply`."""

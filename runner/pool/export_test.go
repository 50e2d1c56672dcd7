package pool

// KillTimeout is for tests that let that time go by.
const KillTimeout = killTimeout

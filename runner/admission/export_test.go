package admission

// Owners is how many owners an Admission remembers.
func Owners(a *Admission) int {
	a.queue.mu.Lock()
	defer a.queue.mu.Unlock()
	return len(a.queue.owners)
}

package cells

// Calm is what the engine does if a cell is late.
func (e *Engine) Calm() { e.calm() }

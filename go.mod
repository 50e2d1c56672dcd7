module notebox

go 1.26.8

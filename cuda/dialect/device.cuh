// PTX, to come

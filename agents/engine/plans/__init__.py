"""Work that is bigger than one loop: plans, who writes them, and how they are carried out."""

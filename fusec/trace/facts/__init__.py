"""What is known without a trace: names, layouts, texts, and what NumPy is installed."""

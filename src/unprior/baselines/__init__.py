"""The methods that SPC is compared with: prompts, decoders, model edits, and controls on the scores."""

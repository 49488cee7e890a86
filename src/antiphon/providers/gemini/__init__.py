"""Google's Gemini API: `generateContent`, streamed."""

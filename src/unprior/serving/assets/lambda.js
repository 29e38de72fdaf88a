// Scores are linear in λ, so what a strength does to an answer is computed here, exactly.

// Scores without the image as they are subtracted: of an open question, none lies further below the best than its clip.
export function clipped(prior, clip) {
  const low = Math.max(...prior) - (clip ?? Infinity);
  return prior.map((score) => Math.max(score, low));
}

// Corrected scores at a strength; the mean does not matter and is taken out.
export function corrected(withImage, prior, strength) {
  const values = withImage.map((score, place) => score - strength * prior[place]);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return values.map((value) => value - mean);
}

// Who is first from which strength to which, from 0 on; the last part has no end.
export function firstPlaces(withImage, prior) {
  const places = [...withImage.keys()];
  // Of candidates that meet, the one with the lowest prior is first from there on.
  const later = (found, best) => found.at < best.at || (found.at === best.at && prior[found.place] < prior[best.place]);
  const above = (other, best) => withImage[other] - withImage[best] || prior[best] - prior[other];
  let place = places.reduce((best, other) => (above(other, best) > 0 ? other : best));
  const parts = [{ place, from: 0, to: Infinity }];
  for (;;) {
    const meeting = places
      .filter((other) => prior[other] < prior[place])
      .map((other) => ({ place: other, at: (withImage[place] - withImage[other]) / (prior[place] - prior[other]) }));
    if (!meeting.length) return parts;
    const next = meeting.reduce((best, found) => (later(found, best) ? found : best));
    parts.at(-1).to = next.at;
    place = next.place;
    parts.push({ place, from: next.at, to: Infinity });
  }
}

export const winner = (values) => values.indexOf(Math.max(...values));

export function shares(scores, temperature = 1) {
  const top = Math.max(...scores);
  const weights = scores.map((score) => Math.exp((score - top) / temperature));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

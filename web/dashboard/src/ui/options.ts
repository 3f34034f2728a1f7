/** Return what was chosen as a part of a query; nothing where it is none of what there is to choose. */
export function chosenOf<Name extends string, One extends string>(
  name: Name,
  options: readonly One[],
  chosen: string | undefined,
): Partial<Record<Name, One>> {
  const found = options.find((one) => one === chosen);
  return found === undefined ? {} : ({ [name]: found } as Record<Name, One>);
}

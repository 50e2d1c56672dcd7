/** copyText puts a text on the clipboard; a page that is not secure can select it alone, if it is in an element. */
export async function copyText(text: string, element?: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (element) getSelection()?.selectAllChildren(element);
    return false;
  }
}
